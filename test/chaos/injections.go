package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// injections are the 20 types of operator-chaos (github.com/opendatahub-io/operator-chaos) with the equivalent fault of this
// program and its differences; "not here" marks types that cannot occur.
var injections = []struct{ name, here string }{
	{"PodKill", "the process is killed"},
	{"NetworkPartition", "the proxy loses everything"},
	{"CRDMutation", "fields of children, which their tool reaches by the same injection"},
	{"ConfigDrift", "data of ConfigMaps and Secrets"},
	{"WebhookDisrupt", "a wrong CA in all webhook configurations; an operator does not own their failurePolicy"},
	{"RBACRevoke", "all bindings of the manager are emptied"},
	{"FinalizerBlock", "a foreign finalizer on a child that is deleted"},
	{"ClientFault", "answers of the API server; their type needs their library in the operator"},
	{"OwnerRefOrphan", "owner references of children are removed"},
	{"QuotaExhaustion", "a ResourceQuota without room"},
	{"WebhookLatency", "a webhook that takes seconds"},
	{"NamespaceDeletion", "the namespace of a custom resource; namespaces are a user's to make again"},
	{"LabelStomping", "labels of children are removed"},
	{"SecretDeletion", "Secrets of children and of the webhooks' certificate"},
	{"DeploymentScaleZero", "the Deployments of children; that of the manager is a user's"},
	{"LeaderElectionDisrupt", "the Lease is deleted, and taken by another client"},
	{"CrashLoopInject", "the command in children's pod templates; pods of this control plane do not run"},
	{"ImageCorrupt", "images of children; likewise"},
	{"ResourceDeletion", "every child"},
	{"PDBBlock", "a PodDisruptionBudget over pods of children"},
}

// injectionTable prints, for each type, its scenarios and the worst of their verdicts.
func injectionTable(out io.Writer, rows []row) {
	fmt.Fprintln(out, "| Type of operator-chaos | Here | Scenarios | Verdict |")
	fmt.Fprintln(out, "|---|---|---|---|")
	order := []verdict{resilient, inconclusive, degraded, failed}
	for _, one := range injections {
		var scenarios []string
		worst := -1
		for _, r := range rows {
			if slices.Contains(r.Injections, one.name) {
				scenarios = append(scenarios, r.Scenario)
				worst = max(worst, slices.Index(order, r.Verdict))
			}
		}
		result := "not run"
		if worst >= 0 {
			result = string(order[worst])
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", one.name, one.here, strings.Join(scenarios, ", "), result)
	}
}
