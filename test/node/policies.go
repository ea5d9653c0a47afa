package node

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/odh-platform/odh-platform-operator/test/node/policy"
)

// enforcePolicies updates the nftables rules after changes of NetworkPolicies, pods and namespaces. The rules apply to packets
// between pods of the bridge because of bridge-nf-call-iptables. Packets of the node itself, such as probes of the kubelet, are
// always allowed, as with other network plugins.
func enforcePolicies(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	namespaces, pods := factory.Core().V1().Namespaces(), factory.Core().V1().Pods()
	policies := factory.Networking().V1().NetworkPolicies()
	loadedRules := ""
	return onChange(ctx, factory, func() error {
		var objects policy.Objects
		var errs [3]error
		var listed []*corev1.Namespace
		listed, errs[0] = namespaces.Lister().List(labels.Everything())
		objects.Pods, errs[1] = pods.Lister().List(labels.Everything())
		objects.Policies, errs[2] = policies.Lister().List(labels.Everything())
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		objects.Namespaces = map[string]labels.Set{}
		for _, namespace := range listed {
			objects.Namespaces[namespace.Name] = namespace.Labels
		}
		rules, err := policy.Rules(objects)
		if err != nil || rules == loadedRules {
			return err
		}
		if err := loadRules(ctx, rules); err != nil {
			return err
		}
		loadedRules = rules
		return nil
	}, namespaces.Informer(), pods.Informer(), policies.Informer())
}

func loadRules(ctx context.Context, rules string) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = bytes.NewBufferString(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("loading the rules of NetworkPolicies: %w\n%s", err, output)
	}
	return nil
}
