// Package database decides about the generated database of a registry: which image may run on its data, and how its backups are. It
// reads and writes nothing.
package database
