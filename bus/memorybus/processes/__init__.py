"""Child processes of ours and the signals that end them.

They are told everything by the environment and speak in lines on their output. Commands and
workers start their children with it.
"""
