// Package resources contains builders of objects that several components use. They send no requests.
package resources
