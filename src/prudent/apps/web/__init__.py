"""The live page: ``prudent serve``.

There are three kinds of processes.  The browser shows (``static/``).  The server (``app``) guards, keeps answers and
hands out work.  Workers compute (``worker``), and only they know models.  A request carries all of its state, and the
answer is a function of it; if the page gives a request up, its solve is stopped.
"""
