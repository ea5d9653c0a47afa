// Package config loads flags, environment variables and the configuration file into one validated value.
//
// Flags take precedence over the environment, the environment over the file, the file over the defaults. settings.go defines the flag, the
// environment variables, the key in the file, the default and the parser of every setting. The configuration is loaded once at the start;
// other packages do not read the environment.
package config
