// The dashboards of source/ in the formats of Grafana and of the OpenShift console, each in a ConfigMap. `make generate` writes both.
local dashboards = [
  std.parseYaml(importstr 'source/manager.yaml'),
  std.parseYaml(importstr 'source/modelmesh.yaml'),
];

local pageWidth = 24;
local panelType(p) = std.get(p, 'type', 'graph');
local labelValues(v) = 'label_values(%s, %s)' % [v.metric, v.name];
local refId(i) = std.char(std.codepoint('A') + i);

// checked returns a panel, or fails if it is invalid.
local checked(p) =
  assert std.member(['graph', 'stat', 'table'], panelType(p)) : 'panel %s: type %s is not one of graph, stat, table' % [p.title, p.type];
  assert p.width >= 1 && p.width <= pageWidth : 'panel %s: width %d is not between 1 and %d' % [p.title, p.width, pageWidth];
  assert std.length(p.queries) > 0 : 'panel %s has no queries' % p.title;
  p;

local configMap(d, namespace, labels, content) = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'grafana-dashboard-' + d.name, namespace: namespace, labels: labels { 'app.kubernetes.io/name': 'odh-platform-operator' } },
  data: { [d.name + '.json']: std.manifestJsonEx(content, ' ') + '\n' },
};

// grafana is a dashboard of schema version 38, that of Grafana 10. Newer releases support it.
local grafana(d) = {
  local source = { type: 'prometheus', uid: '${datasource}' },
  local heights = { graph: 8, stat: 4, table: 8 },

  local targets(p) = std.mapWithIndex(function(i, q) {
    refId: refId(i),
    datasource: source,
    expr: q.expr,
    legendFormat: std.get(q, 'legend', ''),
    [if panelType(p) != 'graph' then 'instant']: true,
    [if panelType(p) != 'graph' then 'range']: false,
    [if panelType(p) == 'table' then 'format']: 'table',
  }, p.queries),
  local panel(p) = {
    type: { graph: 'timeseries', stat: 'stat', table: 'table' }[panelType(p)],
    title: p.title,
    datasource: source,
    targets: targets(p),
    fieldConfig: { overrides: [], defaults: {
      unit: std.get(p, 'unit', ''),
      [if panelType(p) == 'graph' then 'min']: 0,
      [if panelType(p) == 'graph' then 'custom']: {
        fillOpacity: 10,
        showPoints: 'never',
        [if std.get(p, 'stack', false) then 'stacking']: { mode: 'normal' },
      },
    } },
    options: {
      graph: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
      stat: { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'none' },
      table: {},
    }[panelType(p)],
    // Tables do not show the time of samples.
    [if panelType(p) == 'table' then 'transformations']: [{ id: 'organize', options: { excludeByName: { Time: true } } }],
    [if std.objectHas(p, 'description') then 'description']: p.description,
  },
  local row(r) = { type: 'row', title: r.title, collapsed: false, panels: [] },

  // place adds a panel to the right of the previous panel, or below all panels if the line is full. next, y and height describe the line.
  local place(grid, new, width, height, newLine) =
    local below = newLine || grid.next + width > pageWidth;
    local x = if below then 0 else grid.next, y = if below then grid.y + grid.height else grid.y;
    {
      next: x + width,
      y: y,
      height: if below then height else std.max(grid.height, height),
      panels: grid.panels + [new { id: std.length(grid.panels) + 1, gridPos: { x: x, y: y, w: width, h: height } }],
    },
  local placeRow(grid, r) = std.foldl(
    function(g, p) place(g, panel(checked(p)), p.width, heights[panelType(p)], false),
    r.panels,
    place(grid, row(r), pageWidth, 1, true)
  ),

  uid: d.uid,
  title: d.title,
  tags: d.tags,
  schemaVersion: 38,
  version: 1,
  editable: true,
  timezone: 'browser',
  time: { from: 'now-6h', to: 'now' },
  refresh: '1m',
  panels: std.foldl(placeRow, d.rows, { next: 0, y: 0, height: 0, panels: [] }).panels,
  templating: { list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', hide: 0 }] + [{
    name: v.name,
    label: v.label,
    type: 'query',
    datasource: source,
    definition: labelValues(v),
    query: { query: labelValues(v), refId: 'values' },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  } for v in std.get(d, 'variables', [])] },
};

// console is a dashboard in the older format of Grafana with rows, for the OpenShift console. A line has twelve columns.
local console(d) = {
  local columns = 12,

  local panel(p) = {
    local unit = if std.get(p, 'unit', '') == '' then 'short' else p.unit,

    title: p.title,
    type: { graph: 'graph', stat: 'singlestat', table: 'table' }[panelType(p)],
    span: std.max(1, std.floor(p.width * columns / pageWidth)),
    datasource: 'prometheus',
    stack: std.get(p, 'stack', false),
    targets: std.mapWithIndex(function(i, q) {
      refId: refId(i),
      expr: q.expr,
      legendFormat: std.get(q, 'legend', ''),
      format: if panelType(p) == 'table' then 'table' else 'time_series',
      [if panelType(p) != 'graph' then 'instant']: true,
    }, p.queries),
    [if panelType(p) == 'graph' then 'yaxes']: [{ format: unit, min: 0, show: true }, { format: 'short', show: false }],
    [if panelType(p) == 'graph' then 'legend']: { show: true },
    [if panelType(p) == 'stat' then 'format']: unit,
    [if panelType(p) == 'stat' then 'valueName']: 'current',
  },

  title: d.title,
  uid: d.uid,
  tags: d.tags,
  editable: false,
  schemaVersion: 14,
  rows: [{ title: r.title, showTitle: true, collapse: false, panels: [panel(checked(p)) for p in r.panels] } for r in d.rows],
  time: { from: 'now-6h', to: 'now' },
  refresh: '1m',
  templating: { list: [{
    name: v.name,
    label: v.label,
    type: 'query',
    datasource: 'prometheus',
    query: labelValues(v),
    refresh: 2,
    sort: 1,
    includeAll: true,
    multi: false,
    current: { text: 'All', value: '$__all' },
    hide: 0,
  } for v in std.get(d, 'variables', [])] },
};

local head = '# Generated from dashboards.jsonnet and source: change these and run make generate.\n';
local yaml(maps) = head + std.manifestYamlStream(maps, quote_keys=false, c_document_end=false);
{
  'grafana.yaml': yaml([configMap(d, 'system', { grafana_dashboard: '1' }, grafana(d)) for d in dashboards]),
  'console/console.yaml': yaml([
    configMap(d, 'openshift-config-managed', { 'console.openshift.io/dashboard': 'true' }, console(d))
    for d in dashboards
  ]),
}
