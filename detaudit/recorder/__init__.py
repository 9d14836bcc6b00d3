"""The recorder: runs inside the training process, hooks the training without changing it, and writes an event log.

The user's process loads it under the private name ``_detaudit.recorder``, in an environment that may not have detaudit.
So it imports only the standard library and ``wire``, and reaches a framework through the module that the script itself
imported.
"""
