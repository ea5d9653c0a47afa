package main

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// leaderLock returns the Lease with the name of the pod as its holder, or nil for the library's, whose holder has another name in
// each process. A container that was killed and is restarted in its pod holds its Lease still, and need not wait for its end.
// No other process has the name of a pod.
func leaderLock(le config.LeaderElection, restConfig *rest.Config) (resourcelock.Interface, error) {
	if !le.Enabled || le.Identity == "" {
		return nil, nil //nolint:nilnil // none is what the library takes for its own
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, le.Namespace, names.OperatorName,
		resourcelock.ResourceLockConfig{Identity: le.Identity}, rest.AddUserAgent(restConfig, "leader-election"), le.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("building the lock of the leader: %w", err)
	}
	return lock, nil
}
