"""The child's side: watches a training without changing it, and writes what it saw into a trace.

It runs inside the user's process under the private name ``_detaudit.recorder``, in an environment that
may not have detaudit, so it imports only the standard library and ``wire``. A framework is reached through
the module object that the script itself imported.
"""
