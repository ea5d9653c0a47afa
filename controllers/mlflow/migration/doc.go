// Package migration is the state machine of a database migration, in pure functions. facts.go defines the inputs, rules.go and check.go
// the ordered rules, of which the first match decides, and actions.go their decisions.
package migration
