"""The studio: a local web page in which everything that ships can be used by hand.

    server      the application: routes, pages, start and end
    security    who may ask: hosts, origins, the token, sizes, and what a page may load
    jobs        long work in one pool of threads, fair between tabs, watched as it goes on, cancelled at any step
    models      models are loaded once and stay warm
    uploads     files of strangers, looked at before anything reads them
    how         how an answer came about, and the lines of Python and of the command line that give the same

A page for each room: ``table_*``, ``chorale_*``, ``picture_*``, ``text_*``, ``translation_*``. Pages (``pages/``) are
plain ES modules: nothing is built, and nothing comes from the network.
"""
