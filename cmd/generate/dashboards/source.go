package main

import (
	"errors"
	"fmt"
	"slices"
)

// object is a piece of JSON; its members are written in the order of their names.
type object map[string]any

// dashboard is a document in source.
type dashboard struct {
	// Name of the ConfigMap, and part of its key.
	Name string `json:"name"`
	// UID and Title in Grafana.
	UID       string     `json:"uid"`
	Title     string     `json:"title"`
	Tags      []string   `json:"tags"`
	Variables []variable `json:"variables"`
	Rows      []row      `json:"rows"`
}

// variable is a choice of values of a label, which Metric has. Queries name it $Name; all values are chosen at first.
type variable struct {
	Name   string `json:"name"`
	Label  string `json:"label"`
	Metric string `json:"metric"`
}

type row struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

// The kinds of panels. Without a word it is a graph.
const graph, stat, table = "graph", "stat", "table"

type panel struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Type        string `json:"type"`
	// Unit is one of Grafana's, such as bytes or s.
	Unit string `json:"unit"`
	// Width in twenty-fourths of the page.
	Width   int     `json:"width"`
	Stack   bool    `json:"stack"`
	Queries []query `json:"queries"`
}

type query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legend"`
}

const pageWidth = 24

// check fills in what may be left out, and returns an error that names what must not be.
func (d *dashboard) check() error {
	if d.Name == "" || d.UID == "" || d.Title == "" || len(d.Rows) == 0 {
		return errors.New("name, uid, title and rows are required")
	}
	for i := range d.Rows {
		for j := range d.Rows[i].Panels {
			p := &d.Rows[i].Panels[j]
			if err := p.check(); err != nil {
				return fmt.Errorf("panel %q of row %q: %w", p.Title, d.Rows[i].Title, err)
			}
		}
	}
	return nil
}

func (p *panel) check() error {
	if p.Type == "" {
		p.Type = graph
	}
	switch {
	case p.Title == "" || len(p.Queries) == 0:
		return errors.New("a title and queries are required")
	case !slices.Contains([]string{graph, stat, table}, p.Type):
		return fmt.Errorf("type %q is not one of graph, stat, table", p.Type)
	case p.Width < 1 || p.Width > pageWidth:
		return fmt.Errorf("width %d is not between 1 and %d", p.Width, pageWidth)
	}
	return nil
}
