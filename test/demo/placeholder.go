package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// managerContainer is the name of the manager's container.
	managerContainer = "manager"
	// metricsLabel selects the Service of the manager's metrics.
	metricsLabel = "platform.opendatahub.io/metrics"

	descriptionAnnotation = "kubernetes.io/description"
	description           = "Placeholder for the manager, which runs as a process outside the cluster with these arguments and variables."
)

// managerIndex returns the index of the manager's container, negative if the Deployment has none.
func managerIndex(deployment *appsv1.Deployment) int {
	return slices.IndexFunc(deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == managerContainer })
}

// placeholder returns the manager's Deployment with the settings of the process, for clients such as kubectl odh that read the settings
// from the cluster. kwok simulates its pod, which therefore has no ports and no probes. The variables env omit KUBECONFIG, which is not a
// setting, and POD_NAMESPACE, which the shipped Deployment sets.
func placeholder(shipped *appsv1.Deployment, args, env []string) *appsv1.Deployment {
	deployment := shipped.DeepCopy()
	for _, annotations := range []*map[string]string{&deployment.Annotations, &deployment.Spec.Template.Annotations} {
		if *annotations == nil {
			*annotations = map[string]string{}
		}
		(*annotations)[descriptionAnnotation] = description
	}
	index := managerIndex(deployment)
	if index < 0 {
		return deployment
	}
	container := &deployment.Spec.Template.Spec.Containers[index]
	container.Args, container.Ports, container.LivenessProbe, container.ReadinessProbe = args, nil, nil, nil
	container.Env = slices.DeleteFunc(container.Env, func(v corev1.EnvVar) bool { return v.ValueFrom == nil })
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return deployment
}

// routeMetrics routes the Service of the manager's metrics to the process on a port of this machine, like the webhooks, instead of to
// the placeholder pod.
func routeMetrics(objects []*unstructured.Unstructured, port int64) {
	for _, object := range objects {
		if object.GetKind() == "Service" && object.GetLabels()[metricsLabel] == "true" {
			object.Object["spec"] = map[string]any{
				"type": "ExternalName", "externalName": "localhost",
				"ports": []any{map[string]any{"name": "https", "port": port, "protocol": "TCP"}},
			}
		}
	}
}

// createPlaceholder creates the placeholder Deployment of the manager.
func (d *demo) createPlaceholder(ctx context.Context, env *environment, deployment *appsv1.Deployment) error {
	config, err := env.instance.Config()
	if err != nil {
		return err
	}
	writer, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	env.placeholder = deployment
	if err := writer.Create(ctx, deployment); err != nil {
		return fmt.Errorf("creating Deployment %s: %w", deployment.Name, err)
	}
	d.logf("Deployment %s/%s created with the settings of the manager process; its pod is a placeholder", deployment.Namespace, deployment.Name)
	return nil
}

// placeholderReadiness returns the readiness of the placeholder Deployment.
func (env *environment) placeholderReadiness(ctx context.Context) readiness {
	live := &appsv1.Deployment{}
	if err := env.client.Get(ctx, client.ObjectKeyFromObject(env.placeholder), live); err != nil {
		return readiness{text: err.Error()}
	}
	return rolloutReadiness(live)
}

// rolloutReadiness returns the readiness of a Deployment, with its rollout state.
func rolloutReadiness(deployment *appsv1.Deployment) readiness {
	state := conditions.Rollout(deployment)
	return readiness{state.Ready, fmt.Sprintf("%d/%d replicas ready, %s", state.ReadyReplicas, state.Desired, state.Message)}
}
