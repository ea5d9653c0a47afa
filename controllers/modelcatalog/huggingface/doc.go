// Package huggingface follows the Secrets with keys for Hugging Face that the server of the catalog is to have. RBAC knows no labels, so
// the right to find them is the right to see every Secret where it is granted: it is a role of its own, which an installation may leave
// out. No key is held in memory, only a hash of it.
package huggingface

// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
