// Package huggingface watches the labelled Secrets with API keys for Hugging Face. RBAC cannot restrict list by labels, so its role grants
// access to all Secrets. The role is separate, and installations may omit its binding. Only hashes of API keys are held in memory.
package huggingface

// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
