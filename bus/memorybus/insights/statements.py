"""The SQL of insights: each statement counts the view ``counted``, or a table made of it."""

ADD_WORDS = "insert into words select $number, unnest($listed)"

COUNTED = """
create view counted as
select id, hash(agent, "user", workspace, "session") as talk, "type", agent, "user", workspace,
  platform, "session", root, epoch_ms("at") as moment, {figures}
from rows
where "at" >= to_timestamp({since} / 1000.0) and omitted = '' and {wanted} {standing}
"""
STANDING = "and id not in (select id from retracted)"

RETRACTED = """
create temp table retracted as
select distinct id from (
  select try_cast(unnest(retracted) as uuid) as id
  from rows where "type" = 'SessionSwitched' and len(retracted) > 0)
where id is not null
"""

USAGES = """
create temp table usages as
select talk, moment, usage from counted where "type" = 'SessionEnded' and len(usage) > 0
"""

SESSIONS = """
create temp table sessions as
with ended as (select talk, max(moment) as counted_at from usages group by talk),
talks as (
  select hash(agent, "user", workspace, "session") as talk, agent, "user", "session",
    any_value(hash(agent, "user", workspace, root)) as tree,
    coalesce(arg_min(platform, moment) filter ("type" = 'TurnCompleted'), '') as platform,
    min(moment) filter ("type" not in ('MemoryWritten', 'Derived')) as began,
    max(moment) filter ("type" not in ('MemoryWritten', 'Derived')) as ended,
    count(*) filter ("type" = 'TurnCompleted') as turns,
    bool_or("type" = 'SessionStarted') as is_whole
  from counted where "type" in ('SessionStarted', 'TurnCompleted', 'MemoryWritten',
    'SessionSwitched', 'ContextCompressing', 'Delegated', 'SessionEnded', 'ToolCalled', 'Derived')
  group by agent, "user", workspace, "session" having turns > 0)
select talks.* exclude (is_whole), case when is_whole then counted_at end as counted_at
from talks left join ended using (talk)
"""

TALKED = """
create temp table talked as
select talk, coalesce(e.model, '') as model,
  coalesce(e.moment <= s.counted_at, false) as is_in_total,
  count(*) as turns, sum(e.user_messages) as user_messages,
  sum(e.assistant_messages) as assistant_messages, sum(e.tool_messages) as tool_messages,
  sum(e.user_messages + e.assistant_messages + e.tool_messages) as messages,
  sum(coalesce(len(e.tools), 0)) as calls, sum(e.tokens_in) as tokens_in,
  sum(e.tokens_out) as tokens_out, sum(e.cost) as cost,
  count(*) filter (e.tokens_in + e.tokens_out = 0) as without_tokens,
  min(moment) as first, max(moment) as last
from counted e join sessions s using (talk)
where e."type" = 'TurnCompleted' group by talk, 2, is_in_total
"""

CALLED = """
create temp table called as
select moment, tools, skills_loaded, skills_edited
from counted where "type" = 'TurnCompleted' and len(tools) > 0
"""

OTHERS = """
create temp table others as
select talk, "type", moment, what, about, tools[1] as tool, tool_messages, tokens_in,
  tokens_out, cost
from counted where "type" in ('MemoryWritten', 'SessionSwitched', 'ContextCompressing', 'Delegated',
  'ToolCalled', 'Derived', 'MemoryCurated')
"""

SPENT = """
create temp table spent as
with ended as (
  select talk, unnest(e.usage) as u from usages e join sessions s using (talk)
  where e.moment = s.counted_at)
select talk, u.model as model, u.tokens_in as tokens_in, u.tokens_out as tokens_out,
  case when u.cost >= 0 then u.cost end as cost
from ended
union all
select talk, model, tokens_in, tokens_out, cost from talked where not is_in_total
"""

GIVEN = """
create temp table given as
select id, moment, given.provider as provider, given.outcome as outcome, given.events as memories
from (
  select id, moment, unnest(recalled) as given
  from counted where "type" = 'TurnCompleted' and len(recalled) > 0)
"""

TABLES = (USAGES, SESSIONS, TALKED, SPENT, CALLED, OTHERS, GIVEN)
"""What makes the tables, in order."""

OVERVIEW = """
select count(*), sum(turns), sum(ended - began) / 3600000.0 from sessions
"""
ROLES = """
select sum(messages), sum(calls), sum(user_messages), sum(assistant_messages), sum(tool_messages),
  min(first), max(last),
  coalesce(sum(without_tokens) filter (not is_in_total), 0)::bigint
from talked
"""
TOKENS = """
select sum(tokens_in), sum(tokens_out), sum(cost),
  (select count(*) from sessions) - count(distinct talk) filter (cost is not null)
from spent
"""

SHARES = """
with spoken as (
  select {name} as name, count(distinct talk) as n, sum(t.turns) as turns,
    sum(t.messages) as messages, sum(t.calls) as calls, max(last) as last
  from talked t join sessions s using (talk) group by 1),
paid as (
  select {name} as name, count(distinct talk) as n, sum(tokens_in) as tokens_in,
    sum(tokens_out) as tokens_out, sum(cost) as cost
  from spent t join sessions s using (talk) group by 1)
select coalesce(t.name, p.name), greatest(t.n, p.n), coalesce(turns, 0), coalesce(messages, 0),
  coalesce(calls, 0), coalesce(tokens_in, 0), coalesce(tokens_out, 0), cost, coalesce(last, 0)
from spoken t full join paid p on t.name = p.name
order by {order}
"""
BY_TOKENS = "coalesce(tokens_in, 0) + coalesce(tokens_out, 0) desc, 2 desc, 1"
BY_SESSIONS = "2 desc, 3 desc, 1"

TOOLS = """
select tool, count(*), count(*) / sum(count(*)) over (), max(moment)
from (select unnest(tools) as tool, moment from called) group by 1 order by 2 desc, 1
"""
SKILLS = """
with used as (
  select unnest(skills_loaded) as skill, 1 as loads, 0 as edits, moment from called
  union all select unnest(skills_edited), 0, 1, moment from called)
select skill, sum(loads), sum(edits), max(moment) from used group by 1
order by sum(loads) + sum(edits) desc, 4 desc, 1
"""
ACTIVITY = """
select moment // $quarter, count(*), 0 from counted where "type" = 'TurnCompleted' group by 1
union all select began // $quarter, 0, count(*) from sessions group by 1
"""
LONG = """
with longest as (from sessions order by ended - began desc, began limit $longest)
select any_value("session"), any_value("user"), any_value(platform), began,
  (any_value(ended) - began) / 3600000.0, any_value(s.turns), sum(messages)::bigint,
  sum(calls)::bigint
from longest s join talked using (talk)
group by talk, began order by any_value(ended) - began desc, began
"""
COMPRESSIONS = """
with by_tree as (
  select count(distinct (talk, what)) filter ("type" = 'ContextCompressing') as announced,
    count(*) filter ("type" = 'SessionSwitched' and what = 'compression') as switched
  from others join sessions using (talk)
  where "type" in ('ContextCompressing', 'SessionSwitched') group by tree)
select coalesce(sum(greatest(announced, switched)), 0) from by_tree
"""
DELEGATIONS = """
select count(*), coalesce(sum(tool_messages), 0), coalesce(sum(tokens_in), 0),
  coalesce(sum(tokens_out), 0)
from others where "type" = 'Delegated'
"""
DERIVED = """
select what, count(*), sum(tokens_in)::bigint, sum(tokens_out)::bigint, sum(cost)
from others where "type" = 'Derived' group by 1 order by 2 desc, 1
"""
MEMORIES = """
select "where", count(*) filter (what = 'add'), count(*) filter (what = 'replace'),
  count(*) filter (what = 'remove'), count(*) filter (what = 'other')
from (
  select 'store ' || about as "where", what from others where "type" = 'MemoryWritten'
  union all
  select about, case tool when 'memory_add' then 'add' when 'memory_correct' then 'replace'
    when 'memory_forget' then 'remove' else 'other' end
  from others where "type" = 'ToolCalled')
group by 1 order by count(*) desc, 1
"""
AGED = """
select count(*) filter (what = 'stale'), count(*) filter (what = 'archived'),
  count(*) filter (what = 'active'), count(*) filter (what = 'pinned')
from others where "type" = 'MemoryCurated'
"""
RECALLS = """
select provider, count(*), count(*) filter (outcome = 'warm'), count(*) filter (outcome = 'fresh'),
  count(*) filter (outcome = 'late'), count(*) filter (outcome <> 'late' and len(memories) = 0),
  sum(len(memories))::bigint
from given group by 1 order by 2 desc, 1
"""
PROMPTS = """
select moment // $quarter, count(distinct id), count(distinct id) filter (len(memories) > 0)
from given group by 1
"""
USED = """
select memory, provider, count(distinct id), max(moment)
from (select unnest(memories) as memory, id, provider, moment from given)
where memory <> '' group by all order by 3 desc, 4 desc, 1 limit $most
"""
KEPT_OUT = """
select count(*) from rows where omitted = 'retention' and "at" >= to_timestamp($since / 1000.0)
"""
