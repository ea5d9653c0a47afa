// Package database selects the image of a generated database and reports its backups. It sends no requests.
package database
