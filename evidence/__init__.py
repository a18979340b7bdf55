"""Evidence: the event stream, the seal of a bundle and its verification.

Knows files, digests and one journal. Must not know what a lane, a step, a role or a machine is: the content
of a qualification passes through it unread, but for its verdict and its run id.

    canonical  RFC 8785 JSON, read strictly           files   how a file is opened and replaced
    digest     SHA-256 of bytes, files and values     names   which file names a bundle may hold
    event      one CloudEvent and its line            stream  the journal, a hash chain of events
    listing    what lies in a folder                  bundle  sealing, in an order that survives kills
    verify     is a sealed bundle sound, file by file
"""
