// Package config loads flags, environment variables and the configuration file into one validated value.
//
// Flags take precedence over the environment, the environment over the file, the file over legacy ConfigMaps, and these over the defaults.
// Tags of the fields of Config and its sections define the flag, the environment variables, the key in the file, the default, the parser
// and the help of most settings, see settings.go. The configuration is loaded once at the start; other packages do not read settings from
// the environment.
package config
