// Package config turns flags, environment variables and the configuration file into one validated value.
//
// A flag wins over the environment, the environment over the file, the file over the default. One table
// (settings.go) names for every setting its flag, its environment variables in order, its key in the file, its
// default and its parser; everything else here walks that table. The value is read once at the start and handed
// down: no other package reads the environment.
package config
