-- What a process does.

ALTER TABLE instances ADD COLUMN role TEXT COLLATE "C" NOT NULL DEFAULT 'all';
