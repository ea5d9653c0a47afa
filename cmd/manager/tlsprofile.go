package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// hasConfiguredTLS reports whether settings configure a TLS profile. A configured profile overrides that of the cluster.
func hasConfiguredTLS(cfg config.Config) bool { return cfg.TLS.Name == tlsprofile.Configured }

// loadClusterTLS reads the TLS profile of the cluster for servers in pods, if spec.tlsAdherence of the APIServer requires it of all
// components. It is called before the manager is built, so that the first reconcile uses the profile.
func loadClusterTLS(ctx context.Context, env *Env, restConfig *rest.Config, log logr.Logger) error {
	if hasConfiguredTLS(env.Config) || len(env.Config.EnabledComponents()) == 0 {
		return nil
	}
	reader, err := dynamic.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("building the dynamic client: %w", err)
	}
	var profile tlsprofile.Profile
	err = retryUntilReachable(ctx, env.Clock, log, func() (err error) {
		profile, err = tlsprofile.ReadForPods(ctx, reader)
		return err
	})
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		log.Info("Servers in pods do not follow the TLS profile of the cluster", "reason", err.Error())
	}
	env.Config.SetTLS(profile)
	return nil
}
