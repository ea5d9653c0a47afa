// Package kinds is the table of the kinds of custom resources that can be rendered, and what the components make of the settings.
package kinds
