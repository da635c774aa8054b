"""The ledger made durable: the only room that opens the ledger's database.

Here: the SQLite store (`sqlite`), the tables (`tables`), what goes in and comes out (`records`), who owns a started
request (`owner`), the machine's errors in our words (`faults`). Not here: what entries mean (`ledger`), when a release
reserves and settles (`session`). Start with `sqlite.SqliteStore`.
"""
