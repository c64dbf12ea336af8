create table orders(id integer primary key, customer integer, total integer, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)
insert into orders select i, (i * 7919) % 5000, i % 1000, printf('%0160d', i) from n;
create index by_customer on orders(customer);
