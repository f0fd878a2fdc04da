-- Forget a producer whose spool is discarded: it sends nothing any more.
--
-- KEYS[1] producers  hash: the last sequence taken from each producer, and when (see append); the
--                    fields of this producer are deleted.
--
-- ARGV: producer.
--
-- Returns nothing.
forget(KEYS[1], ARGV[1])
