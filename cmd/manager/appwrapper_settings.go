package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// appWrapperConfig is the configuration of the component. The ConfigMaps are read once, at the first need: by then the API
// server answers, and a mistake in them keeps this component from starting and no other. Until they are right every need
// reads them again.
type appWrapperConfig struct {
	config config.Config

	mu   sync.Mutex
	read *config.AppWrapper
}

// get returns the configuration, checked. The error of a mistake names its place and the remedy.
func (a *appWrapperConfig) get(ctx context.Context, live client.Reader, log logr.Logger) (config.AppWrapper, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.read != nil {
		return *a.read, nil
	}
	var older []config.OlderConfig
	for _, o := range kinds.OlderConfigs {
		key := types.NamespacedName{Namespace: a.config.OperatorNamespace, Name: o.Name}
		stored := &corev1.ConfigMap{}
		err := live.Get(ctx, key, stored)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return config.AppWrapper{}, fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
		older = append(older, config.OlderConfig{Source: "ConfigMap " + key.String(), Data: stored.Data, Embedded: o.Embedded})
	}
	got, notes, err := a.config.AppWrapper(older...)
	if err != nil {
		return config.AppWrapper{}, fmt.Errorf("configuration of appwrapper: %w", err)
	}
	if err := appwrapper.Validate(got.FaultTolerance); err != nil {
		return config.AppWrapper{}, fmt.Errorf("configuration of appwrapper, in ConfigMaps of namespace %s or in the configuration file: %w",
			a.config.OperatorNamespace, err)
	}
	for _, note := range notes {
		log.Info("A key of the configuration has no effect", "reason", note)
	}
	a.read = &got
	return got, nil
}
