"""The live page: ``prudent serve``.

Three kinds of process.  The browser shows (``static/``); the server (``app``) guards, remembers answers and hands work
out; workers compute (``worker``), and only they know models.  A request carries all of its state, an answer is a
function of it, and a request that its page has given up on stops its solve.
"""
