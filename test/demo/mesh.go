package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

// routingLayerProcess is the name of the process of the fake ModelMesh routing layer.
const routingLayerProcess = "modelmesh-standin"

// storageEntry is the connection to a nonexistent object store.
const storageEntry = `{"type": "s3", "access_key_id": "none", "secret_access_key": "none", "endpoint_url": "http://minio.invalid:9000", "default_bucket": "modelmesh-example-models"}`

// needsMesh reports whether any sample is for ModelMesh.
func needsMesh(samples []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(samples, isMesh)
}

func isMesh(sample *unstructured.Unstructured) bool {
	return sample.GroupVersionKind().Group == meshGroup
}

// startMesh installs the dependencies of models, since no pods run here: the CRDs of KServe, an etcd, the storage of the samples,
// and the fake routing layer. It returns the variables that direct the manager to the fake.
func (d *demo) startMesh(ctx context.Context, env *environment) ([]string, error) {
	config, err := env.instance.Config()
	if err != nil {
		return nil, err
	}
	if err := cluster.InstallSet(ctx, config, cluster.KServe); err != nil {
		return nil, err
	}
	etcd, err := modelmesh.StartEtcd(ctx, env.instance)
	if err != nil {
		return nil, err
	}
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	if err != nil {
		return nil, err
	}
	secrets := []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "model-serving-etcd"}, Data: data},
		// The storage of the samples, from which no model is downloaded.
		{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "storage-config"}, StringData: map[string]string{"localMinIO": storageEntry}},
	}
	writer, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	for _, secret := range secrets {
		if err := writer.Create(ctx, secret); err != nil {
			return nil, fmt.Errorf("creating Secret %s: %w", secret.Name, err)
		}
	}
	return d.startRoutingLayer(ctx, env)
}

func buildRoutingLayer(ctx context.Context, progress io.Writer) (string, error) {
	return cluster.BuildProgram(ctx, "./test/modelmesh/cmd/standin", nil, progress)
}

func (d *demo) startRoutingLayer(ctx context.Context, env *environment) ([]string, error) {
	d.step(5, "building and starting a fake ModelMesh routing layer")
	binary, err := buildRoutingLayer(ctx, d.progress)
	if err != nil {
		return nil, err
	}
	ports, err := env.instance.ReservePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	process, err := env.instance.StartProcess(routingLayerProcess, binary, []string{"--kubeconfig=" + env.instance.Kubeconfig(), "--address=" + address}, nil)
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, readyPollInterval, d.timeout, true, func(ctx context.Context) (bool, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the fake routing layer: %w\n%s", err, process.LogTail())
	}
	return modelmesh.Env(address), nil
}
