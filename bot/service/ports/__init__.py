"""The ports of the App: the store holds the truth, the queue says "look at this", GitHub shows the
results. All of them are synchronous and safe to call from several threads.
"""
