// Package appwrapper validates and defaults AppWrappers at admission: it sets the labels of the creator and the default queue, and rejects
// AppWrappers that cannot run, components that the user may not create, and changes of immutable fields.
//
// The patch contains labels only: it does not change fields that are unknown to this program.
package appwrapper
