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

// configuredTLS reports whether the settings name a TLS profile, and that of the cluster does not count.
func configuredTLS(cfg config.Config) bool { return cfg.TLS.Name == tlsprofile.Configured }

// followTLS gives servers in pods the TLS profile of the cluster, if it makes all components follow it. This is read before anything is
// built, so that the first reconcile after a restart knows the profile.
func followTLS(ctx context.Context, env *Env, restConfig *rest.Config, log logr.Logger) error {
	if configuredTLS(env.Config) || len(env.Config.EnabledComponents()) == 0 {
		return nil
	}
	reader, err := dynamic.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("building the dynamic client: %w", err)
	}
	var profile tlsprofile.Profile
	err = whenAnswered(ctx, env.Clock, log, func() (err error) {
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
