"""What leaves a run: which values are measurements, how printed text is read, and how two runs' outputs are compared.

Pure: files are read by ``runs``, runs are started by ``launch``.
"""
