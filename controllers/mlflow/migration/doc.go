// Package migration is the state machine of a database migration. All functions except those of metrics.go are pure. facts.go defines the
// inputs, rules.go and check.go the ordered rules, of which the first match decides, and actions.go and check.go their decisions.
// failure.go evaluates Jobs and their pods.
package migration
