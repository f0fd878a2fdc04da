"""What providers of services share: failures, rate limits, keys, names, texts, options, tools.

Plain functions and one small class; no client, no connection, nothing of any one service. The
folder of a service uses it; it uses the words of the contract alone.
"""
