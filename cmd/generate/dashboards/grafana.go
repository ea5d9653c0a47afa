package main

import (
	"encoding/json"
	"fmt"
)

// grafanaSchema is the version of the format, that of Grafana 10; newer ones read it.
const grafanaSchema = 38

// panelHeights of the kinds of panels, in the rows of Grafana's grid.
var panelHeights = map[string]int{graph: 8, stat: 4, table: 8}

// grafanaMap is the ConfigMap that the sidecar of Grafana picks up by its label.
func grafanaMap(d *dashboard) (object, error) {
	return configMap("grafana-dashboard-"+d.Name, "system", object{"grafana_dashboard": "1"}, d.Name+".json", grafana(d))
}

func configMap(name, namespace string, labels object, key string, content object) (object, error) {
	text, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	labels["app.kubernetes.io/name"] = "odh-platform-operator"
	return object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": name, "namespace": namespace, "labels": labels},
		"data":     object{key: string(text) + "\n"},
	}, nil
}

func grafana(d *dashboard) object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	place := grid{}
	for _, r := range d.Rows {
		place.line()
		panels = append(panels, object{
			"id": len(panels) + 1, "type": "row", "title": r.Title, "collapsed": false, "panels": []object{}, "gridPos": place.take(pageWidth, 1),
		})
		for _, p := range r.Panels {
			one := grafanaPanel(p, source)
			one["id"], one["gridPos"] = len(panels)+1, place.take(p.Width, panelHeights[p.Type])
			panels = append(panels, one)
		}
	}
	return object{
		"uid": d.UID, "title": d.Title, "tags": d.Tags, "schemaVersion": grafanaSchema, "version": 1, "editable": true, "timezone": "browser",
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "1m", "panels": panels, "templating": object{"list": grafanaVariables(d, source)},
	}
}

func grafanaVariables(d *dashboard, source object) []object {
	out := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0}}
	for _, v := range d.Variables {
		definition := fmt.Sprintf("label_values(%s, %s)", v.Metric, v.Name)
		out = append(out, object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": source, "definition": definition,
			"query": object{"query": definition, "refId": "values"}, "refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
			"current": object{"text": "All", "value": "$__all"},
		})
	}
	return out
}

func grafanaPanel(p panel, source object) object {
	kinds := map[string]string{graph: "timeseries", stat: "stat", table: "table"}
	defaults := object{"unit": p.Unit}
	if p.Type == graph {
		custom := object{"fillOpacity": 10, "showPoints": "never"}
		if p.Stack {
			custom["stacking"] = object{"mode": "normal"}
		}
		defaults["custom"], defaults["min"] = custom, 0
	}
	out := object{
		"type": kinds[p.Type], "title": p.Title, "datasource": source, "fieldConfig": object{"defaults": defaults, "overrides": []object{}},
		"targets": grafanaTargets(p, source), "options": object{},
	}
	switch p.Type {
	case graph:
		out["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	case stat:
		out["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "none"}
	case table: // the moment of a sample tells nothing
		out["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": object{"Time": true}}}}
	}
	if p.Description != "" {
		out["description"] = p.Description
	}
	return out
}

func grafanaTargets(p panel, source object) []object {
	out := make([]object, 0, len(p.Queries))
	for i, q := range p.Queries {
		target := object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.Expr, "legendFormat": q.Legend}
		if p.Type != graph {
			target["instant"], target["range"] = true, false
		}
		if p.Type == table {
			target["format"] = "table"
		}
		out = append(out, target)
	}
	return out
}

// grid hands out places from left to right, and from top to bottom.
type grid struct{ x, y, height int }

// line begins a new one, if the present one is not empty.
func (g *grid) line() {
	g.x, g.y, g.height = 0, g.y+g.height, 0
}

func (g *grid) take(width, height int) object {
	if g.x+width > pageWidth {
		g.line()
	}
	out := object{"x": g.x, "y": g.y, "w": width, "h": height}
	g.x, g.height = g.x+width, max(g.height, height)
	return out
}
