// Package resources contains builders of objects that several components use. All of them are pure functions.
package resources
