.print orders by number
select count(note) from (with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
  select (i * 1103515245 + 12345) / 65536 % 32768 as r from n)
  join orders on id = r * r / 32768 * r / 32768 * 9 + 1;
.print orders of some customers
select sum(length(note)) from orders where customer in (17, 170, 1700, 2500, 3100, 4000);
.print a report
select sum(length(note)) from orders;
.print orders by number
select count(note) from (with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
  select (i * 22695477 + 1) / 65536 % 32768 as r from n)
  join orders on id = r * r / 32768 * r / 32768 * 9 + 1;
