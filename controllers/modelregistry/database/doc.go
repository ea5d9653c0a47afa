// Package database selects the image of a generated database and reports its backups. It has no client.
package database
