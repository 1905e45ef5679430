// Vault's server with what the operator's tests speak to and nothing else: the key-value engine, and the logins by token and by
// Kubernetes. With every plugin that Vault links it takes twice as long to build, and is three times as large.
package main

import (
	"os"

	"github.com/hashicorp/cli"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/audit"
	"github.com/hashicorp/vault/command"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
)

func main() {
	server := &command.ServerCommand{
		BaseCommand:        &command.BaseCommand{UI: &cli.BasicUi{Writer: os.Stdout, ErrorWriter: os.Stderr}},
		AuditBackends:      map[string]audit.Factory{},
		CredentialBackends: map[string]logical.Factory{"kubernetes": kubernetes.Factory},
		LogicalBackends:    map[string]logical.Factory{"kv": kv.Factory},
		PhysicalBackends: map[string]physical.Factory{
			"inmem":                  inmem.NewInmem,
			"inmem_ha":               inmem.NewInmemHA,
			"inmem_transactional":    inmem.NewTransactionalInmem,
			"inmem_transactional_ha": inmem.NewTransactionalInmemHA,
		},
		ShutdownCh: command.MakeShutdownCh(),
		SighupCh:   command.MakeSighupCh(),
		SigUSR2Ch:  command.MakeSigUSR2Ch(),
	}
	os.Exit(server.Run(os.Args[1:]))
}
