// Package migration decides what the migration of a database needs next. facts.go holds what is known, rules.go the table of
// rules of which the first that applies decides, actions.go what each does. Nothing here talks to an API server.
package migration
