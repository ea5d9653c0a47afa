package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
)

func appWrapperSpec(env *Env) componentSpec {
	source := &appWrapperConfig{config: env.Config}
	return componentSpec{
		Component: component.Component{
			Name:     appwrapper.ComponentName,
			Requires: []schema.GroupVersionKind{awv1beta2.GroupVersion.WithKind(awv1beta2.Kind)},
			Caches:   appwrapper.Caches(), Transform: appwrapper.Transform,
			Webhooks: env.withGuards(func(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
				webhook.Register(mgr, enabled, guards, func(ctx context.Context) (webhook.Settings, error) {
					c, err := source.get(ctx, mgr.GetAPIReader(), mgr.GetLogger())
					if err != nil && !enabled { // the role for its ConfigMaps may be missing
						return webhook.Settings{ReviewAccess: true}, nil
					}
					return webhook.Settings{DefaultQueueName: c.DefaultQueueName, ReviewAccess: c.UserRBACAdmissionCheck}, err
				})
				return nil
			}),
			Controllers: func(ctx context.Context, mgr ctrl.Manager) error {
				c, err := source.get(ctx, mgr.GetAPIReader(), mgr.GetLogger())
				if err != nil {
					return err
				}
				applier := env.Applier(mgr, apply.Options{FieldOwner: appwrapper.FieldOwner, Component: appwrapper.ComponentName})
				settings := appwrapper.SettingsOf(c)
				settings.AdmissionRules = env.Config.AdmissionRules
				return appwrapper.Setup(ctx, mgr, settings, env.Capabilities, applier)
			},
		},
		FieldOwner: appwrapper.FieldOwner,
		CABundleTargets: []certs.Target{
			{Kind: certs.Mutating, Name: webhook.MutatingConfiguration},
			{Kind: certs.Validating, Name: webhook.ValidatingConfiguration},
		},
	}
}

// appWrapperConfig loads the configuration of the component. It reads the ConfigMaps in the first call of get, when the API server is
// reachable, so that an error affects this component only. After an error, the next call reads them again.
type appWrapperConfig struct {
	config config.Config

	mu     sync.Mutex
	loaded *config.AppWrapper
}

// get returns the validated configuration.
func (a *appWrapperConfig) get(ctx context.Context, reader client.Reader, log logr.Logger) (config.AppWrapper, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loaded != nil {
		return *a.loaded, nil
	}
	var legacyConfigs []config.LegacyConfig
	for _, legacy := range kinds.LegacyConfigs {
		key := types.NamespacedName{Namespace: a.config.OperatorNamespace, Name: legacy.Name}
		stored := &corev1.ConfigMap{}
		err := reader.Get(ctx, key, stored)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return config.AppWrapper{}, fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
		legacyConfigs = append(legacyConfigs, config.LegacyConfig{Source: "ConfigMap " + key.String(), Data: stored.Data, Embedded: legacy.Embedded})
	}
	appWrapper, warnings, err := a.config.AppWrapper(legacyConfigs...)
	if err != nil {
		return config.AppWrapper{}, fmt.Errorf("configuration of appwrapper: %w", err)
	}
	if err := appwrapper.Validate(appWrapper.FaultTolerance); err != nil {
		return config.AppWrapper{}, fmt.Errorf("configuration of appwrapper, in ConfigMaps of namespace %s or in the configuration file: %w",
			a.config.OperatorNamespace, err)
	}
	for _, warning := range warnings {
		log.Info("A key of the configuration has no effect", "reason", warning)
	}
	a.loaded = &appWrapper
	return appWrapper, nil
}
