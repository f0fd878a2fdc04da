"""Our child processes, the keeper that starts them again, and the signals that end them.

A child gets its settings in its environment and reports in JSON lines on its output. Commands and
workers start their children with this package, which knows their command lines but not their work.
"""
