// Package settings holds the settings of the component modelmesh: their types and defaults, the reading of the documents
// that administrators and namespaces write, the source that follows these documents live, and the reading of the Secrets that
// describe etcd, TLS and model storage.
package settings
