-- Where kubeconfigs come from.

-- 'inline': the content is the kubeconfig; 'from': it is JSON that says where to read one.
ALTER TABLE kubeconfigs ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT 'inline';
