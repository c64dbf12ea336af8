-- The program behind sqlite.parquet: a small shop in one in-memory database.
-- Every phase touches memory in its own way; see README.md.

PRAGMA cache_size = -65536;
PRAGMA temp_store = MEMORY;

-- 1. Load: rows arrive in order of their key, the heap grows.
CREATE TABLE customer(id INTEGER PRIMARY KEY, region INT, note BLOB);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INT, day INT, cents INT, memo BLOB);

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
INSERT INTO customer SELECT i, i * 7919 % 50, zeroblob(300 + i % 400) FROM n;

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 14000)
INSERT INTO orders
SELECT i,
       1 + (i * 48271 % 2147483647) % (1 + (i * 16807 % 2500)),
       i / 40,
       i * 69621 % 2147483647 % 100000,
       zeroblob(250 + i % 700)
FROM n;

-- 2. Index: a scan feeds a sorter, then the tree is written in order.
CREATE INDEX orders_customer ON orders(customer);

-- 3. Look-ups through the index, skewed towards customers of low number.
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
SELECT count(*), sum(c) FROM (
  SELECT (SELECT sum(cents) FROM orders o
          WHERE o.customer = 1 + n.i * 7919 % (1 + n.i * 104729 % 2500)) AS c
  FROM n);

-- 4. Reports: joins and aggregates over everything.
SELECT region, count(*), sum(cents) FROM orders JOIN customer ON customer.id = orders.customer
GROUP BY region ORDER BY 3 DESC LIMIT 5;
SELECT day / 30, count(DISTINCT customer), avg(cents) FROM orders GROUP BY 1 ORDER BY 1 LIMIT 5;

-- 5. Changes to the last days: a small hot set is written, again and again.
UPDATE orders SET cents = cents + 1 WHERE id > 13000;
UPDATE orders SET cents = cents + 1 WHERE id > 13000;
UPDATE orders SET cents = cents + 1 WHERE id > 13000;

-- 6. Two long scans that use every page once, with look-ups between them.
SELECT max(memo) = zeroblob(949) FROM orders;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
SELECT count(*), sum(c) FROM (
  SELECT (SELECT sum(cents) FROM orders o
          WHERE o.customer = 1 + n.i * 7919 % (1 + n.i * 104729 % 2500)) AS c
  FROM n);
SELECT max(memo) = zeroblob(949) FROM orders;

-- 7. Deletion of the oldest half.
DELETE FROM orders WHERE id <= 7000;
SELECT count(*) FROM orders;
