"""The template of the page on one group's credit (``credit_view.credit_page``)."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Credit, token by token</title>
<style>
.credit { font: 14px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 110rem; }
.credit h1 { font-size: 1.3rem; } .credit h2 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
.credit table { border-collapse: collapse; font-size: 13px; margin: .4rem 0; }
.credit th, .credit td { text-align: left; padding: .12rem .6rem;
  border-bottom: 1px solid #ddd; vertical-align: top; }
.credit td.number { text-align: right; font-variant-numeric: tabular-nums; }
.credit .columns { display: grid; gap: .8rem;
  grid-template-columns: repeat({{ methods | length }}, minmax(11rem, 1fr)); }
.credit .column { border-top: 3px solid #444; padding-top: .2rem; overflow-wrap: anywhere; }
.credit .column h3 { font-size: .9rem; margin: 0 0 .3rem; }
.credit .token { padding: .1rem 0; white-space: pre-wrap; }
.credit .call { border-top: 1px solid #555; border-bottom: 1px solid #555; }
.credit .query { border-top: 1px solid #555; border-bottom: 3px solid #111; }
.credit .answer { font-weight: 600; }
.credit .box { display: block; border: 1px solid #888; border-left-width: 5px; border-radius: 3px;
  background: #fff; color: #444; padding: .1rem .4rem; margin: .25rem 0; font-size: 12px; }
.credit .legend { display: flex; align-items: center; gap: .6rem; flex-wrap: wrap; }
.credit .ramp span { display: inline-block; padding: .1rem .35rem; font-size: 12px; }
.credit .quiet { color: #555; }
</style>
</head>
<body>
<div class="credit">
<h1>{{ item.question }}</h1>
<p>Accepted: {{ item.answers | join(", ") }}. {{ note }}</p>
<table>
<tr><th>node</th><th>subquestion</th><th>answer</th><th>needs</th></tr>
{% for node in item.nodes %}
<tr><td>{{ node.node_id }}</td><td>{{ node.question }}</td><td>{{ node.answers[0] }}</td>
<td>{{ node.evidence | length }} passage{{ "s" if node.evidence | length > 1 }}{% if node.prerequisites %}, after {{ node.prerequisites | join(", ") }}{% endif %}</td></tr>
{% endfor %}
</table>
<p class="legend">advantage
<span class="ramp">{% for stop in legend %}<span style="{{ stop.style }}">{{ stop.text }}</span>{% endfor %}</span>
<span class="token query">executed query</span> <span class="token call">rest of the call</span>
<span class="token answer">answer</span> <span class="quiet">hover a token for its number</span></p>
{% for rollout in rollouts %}
<h2>Rollout {{ rollout.number }}: {{ rollout.answer }} (F1 {{ rollout.outcome }})</h2>
{% if rollout.disabled %}<p class="quiet">Its local term is disabled: {{ rollout.disabled }}.</p>{% endif %}
<table>
<tr><th>search</th><th>query</th><th>covers</th><th>event</th>{% for name in methods %}<th>{{ name }}</th>{% endfor %}</tr>
{% for search in rollout.searches %}
<tr><td>{{ search.number }}</td><td>{{ search.query }}</td><td>{{ search.covers | join(", ") or "nothing new" }}</td><td class="number">{{ search.event }}</td>{% for value in search.given %}<td class="number" style="{{ value.style }}">{{ value.text }}</td>{% endfor %}</tr>
{% endfor %}
<tr class="quiet"><td colspan="4">reasoning and answer</td>{% for value in rollout.outside %}<td class="number" style="{{ value.style }}">{{ value.text }}</td>{% endfor %}</tr>
</table>
<div class="columns">
{% for column in rollout.columns %}
<div class="column"><h3>{{ column.name }} <span class="quiet">reward {{ column.reward }}</span></h3>
{% for piece in column.pieces %}{% if piece.box %}<span class="box"><b>e = {{ piece.box.event }}</b>, {{ piece.box.covers }}; retrieved: {{ piece.box.titles }}</span>{% else %}<span class="token {{ piece.segment }}" style="{{ piece.style }}" title="{{ piece.title }}">{{ piece.text }}</span>{% endif %}{% endfor %}

</div>
{% endfor %}
</div>
{% endfor %}
</div>
</body>
</html>
"""  # noqa: E501
