-- What a process does.

ALTER TABLE instances ADD COLUMN role TEXT NOT NULL DEFAULT 'all';
