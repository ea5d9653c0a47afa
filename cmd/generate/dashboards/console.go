package main

import "fmt"

// consoleNamespace is where the console of OpenShift looks for dashboards.
const consoleNamespace = "openshift-config-managed"

// consoleWidth is the width of the console's page, in columns.
const consoleWidth = 12

// consoleMap is the ConfigMap that the console of OpenShift shows under Observe, Dashboards.
func consoleMap(d *dashboard) (object, error) {
	return configMap("grafana-dashboard-"+d.Name, consoleNamespace, object{"console.openshift.io/dashboard": "true"}, d.Name+".json", console(d))
}

// console is a dashboard in the older format of Grafana, with rows, which is what the console understands.
func console(d *dashboard) object {
	rows := make([]object, 0, len(d.Rows))
	for _, r := range d.Rows {
		panels := make([]object, 0, len(r.Panels))
		for _, p := range r.Panels {
			panels = append(panels, consolePanel(p))
		}
		rows = append(rows, object{"title": r.Title, "showTitle": true, "collapse": false, "panels": panels})
	}
	variables := make([]object, 0, len(d.Variables))
	for _, v := range d.Variables {
		variables = append(variables, object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": "prometheus",
			"query": fmt.Sprintf("label_values(%s, %s)", v.Metric, v.Name), "refresh": 2, "sort": 1, "includeAll": true, "multi": false,
			"current": object{"text": "All", "value": "$__all"}, "hide": 0,
		})
	}
	return object{
		"title": d.Title, "uid": d.UID, "tags": d.Tags, "editable": false, "schemaVersion": 14, "rows": rows,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "1m", "templating": object{"list": variables},
	}
}

func consolePanel(p panel) object {
	kinds := map[string]string{graph: "graph", stat: "singlestat", table: "table"}
	targets := make([]object, 0, len(p.Queries))
	for i, q := range p.Queries {
		target := object{"refId": string(rune('A' + i)), "expr": q.Expr, "legendFormat": q.Legend, "format": "time_series"}
		if p.Type != graph {
			target["instant"] = true
		}
		if p.Type == table {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	out := object{
		"title": p.Title, "type": kinds[p.Type], "span": max(1, p.Width*consoleWidth/pageWidth), "datasource": "prometheus",
		"targets": targets, "stack": p.Stack,
	}
	unit := p.Unit
	if unit == "" {
		unit = "short"
	}
	switch p.Type {
	case graph:
		out["yaxes"] = []object{{"format": unit, "min": 0, "show": true}, {"format": "short", "show": false}}
		out["legend"] = object{"show": true}
	case stat:
		out["format"], out["valueName"] = unit, "current"
	}
	return out
}
