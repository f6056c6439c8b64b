"""The commands of ``webnn-py`` that concern models and devices; :mod:`webnn_py.javascript` has its own.

From the top::

    entry         runs one of the commands; its errors become one line and a status
    arguments     the command lines; nothing heavy is imported for them
    run           runs a model on files, measures it, compares it
    info          what a model is, what of it runs here
    convert       a simpler model in another file; to_javascript a folder for browsers
    generate      the text of a language model, or of a recording
    check         redundant work of a program
    devices       what contexts can run on
    spec          the operators as data
    completion    scripts for shells
    docs          where the documentation is
    comparison    the same run by onnxruntime
    results       what a run gave: summaries of outputs, classes, times
    feeds         what every input is given, its shape found out from all that is known
    pictures, sounds   files of these as arrays
    declared      the model's inputs, and the sizes of its dimensions
    loading       a model's file, read
    problems      what of a model cannot be imported
    progress      bars on a terminal
    written_files files that are written whole
    failures      errors that users see, with their statuses
    printing      lines and JSON without control characters
    layout        lengths and times as text
"""
