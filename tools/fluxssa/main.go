// Flux's apply engine as a program: applies a file of manifests the way kustomize-controller does, once, and waits for
// nothing to become ready.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// The controller's names for itself.
	fieldManager = "kustomize-controller"
	labelGroup   = "kustomize.toolkit.fluxcd.io"
	// The controller's default of --concurrent-ssa.
	concurrency = 4
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster")
	namespace := flag.String("namespace", "default", "namespace of objects that name none, and of their owner")
	name := flag.String("name", "bench", "name of their owner")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: fluxssa [FLAGS] FILE")
		os.Exit(2)
	}
	changes, err := apply(context.Background(), *kubeconfig, flag.Arg(0), *name, *namespace)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for _, entry := range changes.Entries {
		fmt.Println(entry)
	}
}

func apply(ctx context.Context, kubeconfig, file, name, namespace string) (*ssa.ChangeSet, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// No limit of the client's own: the controller's would make this program wait for most of its time.
	config.QPS = -1
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, transport)
	if err != nil {
		return nil, err
	}
	kube, err := client.New(config, client.Options{HTTPClient: transport, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	input, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	objects, err := utils.ReadObjects(input)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, object := range objects {
		namespaced, err := kube.IsObjectNamespaced(object)
		if err != nil {
			return nil, err
		}
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
	}
	poller := polling.NewStatusPoller(kube, mapper, polling.Options{})
	manager := ssa.NewResourceManager(kube, poller, ssa.Owner{Field: fieldManager, Group: labelGroup})
	manager.SetConcurrency(concurrency)
	manager.SetOwnerLabels(objects, name, namespace)
	if err := normalize.UnstructuredList(objects); err != nil {
		return nil, err
	}
	return manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
}
