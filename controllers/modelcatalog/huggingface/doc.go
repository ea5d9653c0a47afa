// Package huggingface watches the labelled Secrets with keys for Hugging Face. RBAC cannot restrict list by labels, so its role grants
// access to all Secrets of a namespace; it is a separate role that installations may omit. Only hashes of keys are held in memory.
package huggingface

// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
