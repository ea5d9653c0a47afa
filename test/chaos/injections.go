package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// injections are the 20 types of operator-chaos (github.com/opendatahub-io/operator-chaos) with the equivalent fault of this
// program and its differences.
var injections = []struct{ name, equivalent string }{
	{"PodKill", "the manager process is killed"},
	{"NetworkPartition", "the proxy drops all connections"},
	{"CRDMutation", "fields of children, which operator-chaos changes by the same injection"},
	{"ConfigDrift", "data of ConfigMaps and Secrets"},
	{"WebhookDisrupt", "a wrong CA in all webhook configurations; an operator does not own their failurePolicy"},
	{"RBACRevoke", "all bindings of the manager are emptied"},
	{"FinalizerBlock", "a foreign finalizer on a child that is deleted"},
	{"ClientFault", "responses of the API server; operator-chaos requires its library in the operator"},
	{"OwnerRefOrphan", "owner references of children are removed"},
	{"QuotaExhaustion", "an exhausted ResourceQuota"},
	{"WebhookLatency", "a webhook that responds after seconds"},
	{"NamespaceDeletion", "the namespace of a custom resource; users recreate namespaces"},
	{"LabelStomping", "labels of children are removed"},
	{"SecretDeletion", "Secrets of children and of the webhooks' certificate"},
	{"DeploymentScaleZero", "the Deployments of children; the operator does not manage its own"},
	{"LeaderElectionDisrupt", "the Lease is deleted, and acquired by another client"},
	{"CrashLoopInject", "the command in children's pod templates; pods of this control plane do not run"},
	{"ImageCorrupt", "images of children; pods of this control plane do not run"},
	{"ResourceDeletion", "every child"},
	{"PDBBlock", "a PodDisruptionBudget for pods of children"},
}

// injectionTable prints, for each type, its scenarios and the worst of their verdicts.
func injectionTable(out io.Writer, rows []row) {
	fmt.Fprintln(out, "| Type of operator-chaos | Equivalent | Scenarios | Verdict |")
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
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", one.name, one.equivalent, strings.Join(scenarios, ", "), result)
	}
}
